/** What keeps a program from a database that a newer version made, each guard with the test that fails without it. */
import type { Mutation } from './mutation.ts';

const FILE = 'adapters/postgres/migrate.ts';
const TEST = 'test/adapters/postgres/migrate.test.ts';
const KINDS = "rows.filter(({ kind }) => kind !== 'expand')";

export const UPGRADE_MUTATIONS: readonly Mutation[] = [
  {
    without: 'upgrade: the refusal of a later migration beside which no older program may run',
    file: FILE,
    text: KINDS,
    by: "rows.filter(({ kind }) => kind !== 'expand' && kind !== 'contract')",
    test: TEST,
    red: 'refuses a database with a later migration that lets no older program run',
  },
  {
    without: 'upgrade: the refusal of a later migration without the mark',
    file: FILE,
    text: KINDS,
    by: "rows.filter(({ kind }) => kind === 'contract')",
    test: TEST,
    red: 'refuses a database with a later migration that lacks the mark',
  },
  {
    without: 'upgrade: the start at a database with later migrations that only add',
    file: FILE,
    text: KINDS,
    by: 'rows.filter(({ kind, name }) => kind !== name)',
    test: TEST,
    red: 'starts at a database with later migrations that let older programs run',
  },
  {
    without: 'upgrade: the mark of a migration in the transaction of the migration',
    file: FILE,
    text: '      await up(db);\n      if (',
    by: "      await up(db);\n      if (name > '9') return;\n      if (",
    test: TEST,
    red: 'marks each later migration together with what it changes',
  },
  {
    without: 'upgrade: another look when a newer version migrates at the same time',
    file: FILE,
    text: 'if (later.length === before) throw migrated.error;',
    by: 'if (later.length >= before) throw migrated.error;',
    test: TEST,
    red: 'starts beside a newer version that migrates at the same time',
  },
];
