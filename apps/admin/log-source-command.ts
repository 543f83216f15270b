/** `strata-admin log-source`: the name of a source in the lines of the log. */
import { isIP } from 'node:net';
import { type Command, InvalidArgumentError } from 'commander';
import { sourceName } from '../../adapters/node/log-source.ts';
import type { Act } from './answer.ts';

export function addLogSourceCommand(program: Command, act: Act): void {
  program
    .command('log-source')
    .description('prints the name that an address has in the lines of the log of refused requests')
    .requiredOption('--address <address>', 'an IPv4 or IPv6 address', (text) => {
      if (isIP(text) === 0) throw new InvalidArgumentError('Give an address such as 203.0.113.7 or 2001:db8::7.');
      return text;
    })
    .action(
      act<{ address: string }>(async ({ vault }, { address }) => {
        const source = sourceName(await vault.fingerprint('log-source', 'addresses'), address);
        return { value: { source }, text: source };
      }),
    );
}
