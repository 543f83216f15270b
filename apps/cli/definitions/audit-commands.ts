/** Checking the record of the account. */
import type { CommandDefinition } from './definition.ts';

export const AUDIT_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'audit replay',
    summary: 'Rebuild the account from an export, as of a moment',
    arguments: [{ name: 'file', description: 'an export of the log' }],
    options: [
      { name: 'at', kind: 'text', value: 'TIME', description: 'the moment, as RFC 3339; the last entry by default' },
      {
        name: 'compare',
        kind: 'text',
        value: 'URL',
        description: 'the address of a service to compare with: is the account there the same?',
      },
    ],
    notes: [
      'It reads the file alone and prints the digest of the account: the one that the service shows as of the same moment. With --json it prints the account itself, as the API answers it.',
      'It does not check whether the export is unaltered: strata audit verify does.',
    ],
    examples: ['strata audit replay log.ndjson --at 2026-11-21T10:00:00Z --compare https://strata.example'],
    load: async () => (await import('../commands/audit-replay.ts')).auditReplay,
  },
];
