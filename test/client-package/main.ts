/** `npm run client`: writes the files for the command line that are made from the code. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from '../architecture/source-tree.ts';
import { generatedFiles } from './generated.ts';

for (const [path, text] of await generatedFiles()) {
  mkdirSync(dirname(join(ROOT, path)), { recursive: true });
  writeFileSync(join(ROOT, path), text);
  console.log(path);
}
