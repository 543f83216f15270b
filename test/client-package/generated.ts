/**
 * The files of the repository that are made from the code, for the command line: the OpenAPI document, the types of its
 * client, and docs/cli.md.
 *
 * Invariants: the same code gives the same bytes, formatted as the project formats its files.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { makeOpenApiDocument } from '../../apps/api/document.ts';
import manifest from '../../package.json' with { type: 'json' };
import { ROOT } from '../architecture/source-tree.ts';
import { type OpenApiDocument, typesOf } from './openapi-types.ts';
import { referenceText } from './reference.ts';

/** Returns the text of each file by its path below the root. */
export async function generatedFiles(): Promise<ReadonlyMap<string, string>> {
  const document = (await makeOpenApiDocument(manifest.version)) as OpenApiDocument;
  return new Map([
    ['apps/cli/openapi.json', formatted('openapi.json', JSON.stringify(document))],
    ['apps/cli/client/operations.ts', formatted('operations.ts', typesOf(document))],
    ['docs/cli.md', formatted('cli.md', referenceText())],
  ]);
}

function formatted(name: string, text: string): string {
  const biome = join(ROOT, 'node_modules', '.bin', 'biome');
  const args = ['format', `--stdin-file-path=${name}`];
  const { status, stdout, stderr } = spawnSync(biome, args, {
    cwd: ROOT,
    input: text,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  if (status !== 0) throw new Error(`biome cannot format ${name}: ${stderr}`);
  return stdout;
}
