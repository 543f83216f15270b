// refused: typescript(no-floating-promises)
import { test } from 'node:test';

async function check(): Promise<void> {}

test('a', () => {
  check();
});
