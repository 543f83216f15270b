/** A small sample of `npm run differential`, so that every change meets git (CONTRIBUTING.md). */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { compareWithGit } from './run.ts';

const SAMPLE = { seed: 1, inputs: 12, seconds: null, replay: null } as const;

test('Clients and requests find here what they find at git http-backend, but for the differences that are meant', async (context) => {
  const { cases, faults } = await compareWithGit(context, SAMPLE, () => undefined);
  assert.equal(cases, SAMPLE.inputs);
  assert.deepEqual(faults, []);
});
