/**
 * The file `backup.json` of a backup: what the backup is of.
 *
 * Invariants: it is written last, so a folder without it holds no whole backup. It names the master key by its id, and
 * does not hold the key.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { Refused } from '../answer.ts';

const FILE = 'backup.json';

const RECORD = z.strictObject({
  format: z.literal(1),
  made_at: z.iso.datetime(),
  /** `embedded`: a copy of the cluster of an embedded PostgreSQL; `dump`: what pg_dump made of an operator's own. */
  database: z.enum(['embedded', 'dump']),
  /** The major version of that PostgreSQL. */
  postgresql: z.number().int().positive(),
  /** Names the key that opens the vault. */
  master_key_id: z.string().min(1),
});

export type BackupRecord = z.output<typeof RECORD>;

/** Where the parts of a backup lie. */
export function placesIn(folder: string): {
  readonly database: string;
  readonly dump: string;
  readonly layers: string;
} {
  const database = path.join(folder, 'database');
  return { database, dump: path.join(database, 'database.dump'), layers: path.join(folder, 'layers') };
}

export async function writeRecord(folder: string, record: BackupRecord): Promise<void> {
  const draft = path.join(folder, `${FILE}.partial`);
  await writeFile(draft, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600, flush: true });
  await rename(draft, path.join(folder, FILE));
}

/** Throws `Refused` if the folder holds no whole backup, or one of another form. */
export async function readRecord(folder: string): Promise<BackupRecord> {
  const file = path.join(folder, FILE);
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  });
  if (text === null) throw new Refused(`${file} is not there: ${folder} holds no backup, or one that was cut short`);
  const record = RECORD.safeParse(parseJson(text));
  if (record.success) return record.data;
  throw new Refused(`${file} was not written by this version of deploy/backup.sh: ${record.error.issues[0]?.message}`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
