import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import { ROOT } from '../architecture/source-tree.ts';
import { MUTATIONS } from './mutations.ts';

test('each guard that the mutations take out stands in its file once, and its test is there', () => {
  for (const { without, file, text, test: itsTest } of MUTATIONS) {
    const found = readFileSync(path.join(ROOT, file), 'utf8').split(text).length - 1;
    assert.equal(found, 1, `${without}: ${file}`);
    assert.ok(existsSync(path.join(ROOT, itsTest)), itsTest);
  }
});
