// refused: eslint(no-restricted-imports)
import assert from 'node:assert';

assert.ok(true);
