// refused: typescript(no-floating-promises)
import { test } from 'vitest';

async function check(): Promise<void> {}

test('a', () => {
  check();
});
