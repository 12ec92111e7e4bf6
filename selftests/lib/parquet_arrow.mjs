// SPDX-License-Identifier: MIT
// Prints the rows of Parquet files as JSON, a file a line, as Apache Arrow reads them.
import fs from 'fs';
import { tableFromIPC } from 'apache-arrow';
import * as parquet from 'parquet-wasm/node';

const plain = (value) => typeof value === 'bigint' ? value.toString() :
	value && value.toArray ? Array.from(value.toArray(), plain) : value;

for (const path of process.argv.slice(2)) {
	const table = tableFromIPC(parquet.readParquet(new Uint8Array(fs.readFileSync(path))).intoIPCStream());
	const names = table.schema.fields.map((field) => field.name);
	console.log(JSON.stringify(Array.from({ length: table.numRows }, (_, i) => {
		const row = table.get(i);
		return Object.fromEntries(names.map((name) => [name, plain(row[name])]));
	})));
}
