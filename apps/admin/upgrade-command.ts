/** `strata-admin upgrade finish`: ends the span in which the version from before an upgrade can still be started. */
import type { Command } from 'commander';
import type { Raised } from '../../core/ports/running-processes.ts';
import { type Act, Refused } from './answer.ts';

export function addUpgradeCommand(program: Command, act: Act): void {
  program
    .command('upgrade')
    .description('from one version of Strata to a newer one')
    .command('finish')
    .description('writes the newest version of every event from now on, which older versions of Strata cannot read')
    .option('--yes', 'do it even if a process of an older version runs')
    .action(
      act<{ yes?: boolean }>(async ({ runningProcess }, { yes }) => {
        const whoeverRuns = yes === true;
        const finished = await runningProcess.finishUpgrade({ whoeverRuns });
        if (finished.olderProcesses > 0 && !whoeverRuns) throw new Refused(refusalOf(finished));
        const written = Object.entries(finished.raised).map(([type, version]) => ({ type, version }));
        const lines = written.map(({ type, version }) => `${type}: version ${version}, within 30 seconds on each node`);
        const none = 'Every event was written in its newest version already';
        return { value: { written }, text: lines.length === 0 ? none : lines.join('\n') };
      }),
    );
}

function refusalOf({ raised, olderProcesses }: Omit<Raised, 'written'>): string {
  return [
    `Processes of an older version that run, or were killed within the last ten minutes: ${olderProcesses}`,
    'They could not read these events any more, and no process of that version could be started:',
    ...Object.entries(raised).map(([type, version]) => `- ${type} in version ${version}`),
    'Nothing was done. Stop them, or add --yes to do it all the same.',
  ].join('\n');
}
