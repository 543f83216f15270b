/** The script of docs/bucket-layout.md, run as it stands there on a folder. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { LayerStore } from '../../core/ports/layer-store.ts';

const run = promisify(execFile);
const DOCUMENT = path.join(import.meta.dirname, '../../docs/bucket-layout.md');

/** Makes a bare repository from the folder of a repository in a store. Rejects as the script fails. */
export async function rebuildByScript(from: string, to: string): Promise<void> {
  const [, script] = /```sh\n([^]*?)```/.exec(await readFile(DOCUMENT, 'utf8')) ?? [];
  if (script === undefined) throw new TypeError(`${DOCUMENT} has no script`);
  const file = `${to}.sh`;
  await writeFile(file, script);
  await run('sh', [file, from, to], { env: { PATH: process.env['PATH'], HOME: path.dirname(to) } });
}

/** Copies every object whose key starts with the prefix into a folder, as `aws s3 sync` does. */
export async function copyStore(store: LayerStore, prefix: string, to: string): Promise<void> {
  for await (const { key } of store.list(prefix)) {
    const file = path.join(to, key.slice(prefix.length));
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, Buffer.concat(await Array.fromAsync(await store.get(key))));
  }
}
