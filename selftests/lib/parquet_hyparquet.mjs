// SPDX-License-Identifier: MIT
// Prints the rows of Parquet files as JSON, a file a line, as hyparquet reads them.
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';

const plain = (key, value) => typeof value === 'bigint' ? value.toString() : value === undefined ? null : value;

for (const path of process.argv.slice(2))
	console.log(JSON.stringify(await parquetReadObjects({ file: await asyncBufferFromFile(path), compressors }), plain));
