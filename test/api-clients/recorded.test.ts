/** The answers that generated clients decode are answers that this API could give. */
import assert from 'node:assert/strict';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { test } from 'vitest';
import { makeOpenApiDocument } from '../../apps/api/document.ts';
import recorded from './recorded.json' with { type: 'json' };

const SCHEMAS: Readonly<Record<keyof typeof recorded, string>> = {
  '/v1/repos/ada/engine': 'Repository',
  '/v1/account/usage': 'Usage',
  '/v1/repos/ada/engine/contents/module': 'Contents',
  '/v1/repos/ada/engine/tags': 'TagList',
};

test('every recorded answer fits the document, and one size passes 32 bits', async () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema({ $id: 'openapi', ...(await makeOpenApiDocument('1.0.0')) });
  for (const [path, answer] of Object.entries(recorded)) {
    const name = Object.entries(SCHEMAS).find(([known]) => known === path)?.[1];
    const validate = ajv.compile({ $ref: `openapi#/components/schemas/${name}` });
    assert.ok(validate(answer), `${path}: ${ajv.errorsText(validate.errors)}`);
  }
  assert.ok(recorded['/v1/repos/ada/engine'].size_bytes > 2 ** 31);
});
