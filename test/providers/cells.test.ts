/** The table of providers: what each cell says, and that every fact of a row has a source. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { renderProviders } from './cells.ts';
import { PROVIDERS } from './rows.ts';

test('a cell says that it works, what it does without, what refused it, or which facts nobody tells', () => {
  const by = { status: 501, code: 'NotImplemented', message: 'not here' };
  assert.equal(
    renderProviders([
      {
        provider: 'A',
        cells: [
          { is: 'works', without: [] },
          { is: 'works', without: ['conditional writes', 'checks of bodies'] },
          { is: 'refused', by },
          { is: 'unknown', facts: ['hashes', 'condition'] },
          { is: 'no bucket' },
          { is: 'failed', why: 'a word' },
        ],
      },
    ]),
    [
      '| provider | verify | small push                                            | push of 9 MiB                   | clone on an empty cache                 | compaction | delete |',
      '| -------- | ------ | ----------------------------------------------------- | ------------------------------- | --------------------------------------- | ---------- | ------ |',
      '| A        | works  | works without conditional writes and checks of bodies | refused with 501 NotImplemented | unknown: conditional puts, wrong hashes | no bucket  | FAILED |',
      '',
    ].join('\n'),
  );
});

test('every fact of a provider that is not unknown names the page that tells it', () => {
  for (const { name, facts } of PROVIDERS) {
    for (const [fact, known] of Object.entries(facts)) {
      if (known !== null) assert.equal(new URL(known.source).protocol, 'https:', `${name}, ${fact}`);
    }
  }
});

test('each provider has one row', () => {
  const names = PROVIDERS.map(({ name }) => name);
  assert.deepEqual(names, [...new Set(names)]);
});
