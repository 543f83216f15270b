/**
 * What `npm start` and the other commands run: launch.mjs, unless Node cannot load it.
 *
 * Invariants: this file is no module, because Node loads none from below a folder whose name holds a backslash.
 */
'use strict';

const path = require('node:path');

if (path.sep === '/' && __dirname.includes('\\')) {
  const root = path.resolve(__dirname, '..', '..');
  const why = 'Node loads no module from below a folder whose name holds a backslash';
  console.error(`strata: ${why}: move ${root} elsewhere`);
  process.exitCode = 1;
} else {
  import('./launch.mjs').catch((/** @type {unknown} */ error) => {
    console.error(error);
    process.exitCode = 1;
  });
}
