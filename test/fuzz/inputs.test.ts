import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { blob, commit, pack } from '../support/git-wire.ts';
import { inputOf, KINDS } from './inputs.ts';
import type { Scene } from './making.ts';
import { partsOf } from './packs.ts';
import { operationsOf } from './rest-inputs.ts';

const INPUTS = 3_000;
const SEED = 5;
const ID = '01a20acd-bc4b-76e0-b697-d7144d5892ab';

const DOCUMENT = {
  paths: {
    '/v1/repositories': {
      post: {
        operationId: 'createRepository',
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/New' } } } },
      },
    },
    '/v1/webhooks/{id}': {
      get: { operationId: 'getWebhook', parameters: [{ name: 'at', in: 'query', schema: { type: 'string' } }] },
    },
  },
  components: {
    schemas: {
      New: { type: 'object', required: ['name'], properties: { name: { type: 'string' }, size: { type: 'integer' } } },
    },
  },
};

const { id } = commit('first');
const SCENE: Scene = {
  accounts: [
    {
      ...{ username: 'ada', plan: 'FREE', id: ID, token: 'strata_x', ids: { webhooks: [ID] } },
      site: {
        cookie: 'a=b',
        pages: ['/ada', '/new'],
        forms: [
          {
            action: '/new',
            fields: [
              ['_csrf', 'x'],
              ['name', ''],
            ],
          },
        ],
      },
    },
  ],
  operations: operationsOf(JSON.stringify(DOCUMENT)),
  packs: [partsOf(pack([commit('first'), blob('one'), blob('two')]))],
  objects: { commit: [id], tree: [id], blob: [blob('one').id], tag: [id] },
  refs: ['refs/heads/main'],
};

describe('The inputs of a fuzz run', () => {
  test('are the same for the same seed and index, and others for other seeds', () => {
    const series = (seed: number) => Array.from({ length: INPUTS }, (_, index) => inputOf(SCENE, seed, index));
    const [first, again, other] = [series(SEED), series(SEED), series(SEED + 1)];
    assert.deepEqual(first, again);
    const same = first.filter((input, index) => input !== null && other[index]?.bytes.equals(input.bytes) === true);
    assert.ok(same.length < INPUTS / 50, `${same.length} inputs of two seeds are the same`);
  });

  test('are of every kind, cut and whole, and reach every operation', () => {
    const inputs = Array.from({ length: INPUTS }, (_, index) => inputOf(SCENE, SEED, index)).filter(
      (one) => one !== null,
    );
    assert.deepEqual(new Set(inputs.map(({ kind }) => kind)), new Set([...KINDS.map(({ name }) => name), 'heads']));
    assert.deepEqual(new Set(inputs.map(({ sending }) => sending.after)), new Set(['wait', 'end', 'destroy']));
    const text = inputs.map(({ bytes }) => bytes.toString('latin1', 0, 60)).join('\n');
    for (const start of ['POST /v1/repositories ', `GET /v1/webhooks/${ID}`, 'GET /v1/auth/sessions/', 'POST /new ']) {
      assert.ok(text.includes(start), `no input begins with ${start}`);
    }
  });
});
