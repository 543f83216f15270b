/** The files that are made from the code, and the types that the client gets from the API's document. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { ROOT } from '../architecture/source-tree.ts';
import { generatedFiles } from './generated.ts';
import { type OpenApiDocument, typesOf } from './openapi-types.ts';

test('every generated file is current: `npm run client` writes them again', async () => {
  for (const [path, text] of await generatedFiles()) {
    assert.ok(readFileSync(join(ROOT, path), 'utf8') === text, `${path} is stale: npm run client`);
  }
});

describe('the types of a document', () => {
  const NAMED = {
    AccessToken: { properties: { grants: { type: 'array', items: { enum: ['ALL'] } }, scope: { enum: ['ALL_REPO'] } } },
    Webhook: { properties: { events: { type: 'array', items: { enum: ['push'] } } } },
    StorageBucket: { properties: { provider: { enum: ['S3'] }, auth_mode: { enum: ['OIDC'] } } },
  };
  const typesWith = (
    schemas: OpenApiDocument['components']['schemas'],
    paths: OpenApiDocument['paths'] = {},
  ): string => {
    const named = Object.fromEntries(Object.entries(NAMED).map(([name, rest]) => [name, { type: 'object', ...rest }]));
    return typesOf({ paths, components: { schemas: { ...named, ...schemas } } });
  };

  test('say what is optional, null, listed or of several shapes', () => {
    const properties = {
      a: { type: 'string' },
      b: { type: ['integer', 'null'] },
      c: { anyOf: [{ $ref: '#/components/schemas/X' }, { type: 'null' }] },
      d: { type: 'array', items: { const: 'one' } },
      e: { type: 'object', additionalProperties: { type: 'string' } },
    };
    const text = typesWith({ X: { type: 'object', properties, required: ['a', 'd'] } }).replaceAll(/\s+/g, ' ');
    assert.match(text, /interface X \{ readonly a: string; readonly b\?: number \| null; readonly c\?: X \| null;/);
    assert.match(text, /readonly d: readonly \("one"\)\[\]; readonly e\?: \{ readonly \[name: string\]: string \};/);
  });

  test('leave out what only refusals have, other than an error', () => {
    const shape = { type: 'object', properties: { a: { type: 'string' } } };
    const answer = (name: string) => ({
      content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } },
    });
    const responses = { 200: answer('Made'), 404: answer('Error'), 409: answer('NotMade') };
    const text = typesWith(
      { Made: shape, Error: shape, NotMade: shape },
      { '/made': { post: { operationId: 'make', summary: 'Make', responses } } },
    );
    assert.deepEqual(text.match(/(?<=interface )(Made|ErrorBody|NotMade)\b/g), ['Made', 'ErrorBody']);
  });

  test('are refused for a schema that they cannot express', () => {
    assert.throws(() => typesWith({ X: { type: 'tuple' } }), /No type for/);
  });
});
