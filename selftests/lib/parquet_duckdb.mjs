// SPDX-License-Identifier: MIT
// Prints what DuckDB answers to queries, a query a line: its time and rows as JSON.
import duckdb from '@duckdb/node-api';

const plain = (value) => typeof value === 'bigint' ? value.toString() :
	value instanceof duckdb.DuckDBListValue ? value.items.map(plain) :
	value !== null && typeof value === 'object' ? String(value) : value;
const connection = await (await duckdb.DuckDBInstance.create(':memory:')).connect();

for (const query of process.argv.slice(2)) {
	const begin = performance.now();
	const reader = await connection.runAndReadAll(query);
	const names = reader.columnNames();
	const ms = performance.now() - begin;
	const rows = reader.getRows().map((row) => Object.fromEntries(row.map((value, i) => [names[i], plain(value)])));
	console.log(JSON.stringify({ ms, rows }));
}
