/** `strata-admin projections …`: rebuilds, verifies and replays read models. */
import type { Command } from 'commander';
import type { Act } from './answer.ts';
import { type ParkedReport, parkedStreams, replayParked } from './parked-streams.ts';
import { rebuildProjections } from './rebuild-projections.ts';

export function addProjectionCommands(program: Command, act: Act): void {
  const projections = program.command('projections').description('read models');

  projections
    .command('rebuild')
    .description('rebuilds every read model from the log and replaces the live one')
    .option('--verify', 'compare the rebuilt model with the live one row by row instead, and report every difference')
    .action(
      act<{ verify?: boolean }>(async (context, { verify }) => {
        const report = await rebuildProjections(context.withProjections, { verify: verify === true });
        const text = report.map(({ model, rows, differences }) =>
          rows === null ? `${model}: rebuilt` : `${model}: ${rows} rows, ${differences} differences`,
        );
        const status = report.some(({ differences }) => differences > 0) ? 1 : 0;
        return { value: { projections: report }, text: text.join('\n'), status };
      }),
    );

  projections
    .command('parked')
    .description('lists the streams that a read model could not apply, with the reason; reads of their rows get 503')
    .action(
      act(async (context) => {
        const parked = await parkedStreams(context.withProjections);
        return {
          value: { parked },
          text: parked.length === 0 ? 'Nothing is parked' : parked.map(parkedLine).join('\n'),
        };
      }),
    );

  projections
    .command('replay')
    .description('tries parked streams again, and models that halted')
    .option('--model <name>', 'only those of this read model')
    .option('--stream <name>', 'only this stream')
    .action(
      act<{ model?: string; stream?: string }>(async (context, { model = null, stream = null }) => {
        const report = await replayParked(context.withProjections, { model, stream });
        const lines = [
          ...report.replayed.map((done) => `${done.model}: ${done.stream} is applied`),
          ...report.parked.map((left) => `still parked: ${parkedLine(left)}`),
        ];
        const text = lines.length === 0 ? 'Nothing is parked' : lines.join('\n');
        return { value: report, text, status: report.parked.length === 0 ? 0 : 1 };
      }),
    );
}

function parkedLine({ model, stream, revision, events, attempts, error }: ParkedReport): string {
  return `${model}: ${stream} from revision ${revision}, ${events} events, tried ${attempts} times: ${error}`;
}
