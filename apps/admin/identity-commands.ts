/** `strata-admin identity-keys`: the keys that sign the identity tokens of the service. */
import type { Command } from 'commander';
import { createTokenSigning } from '../../adapters/jose/token-signing.ts';
import type { SigningKeySet } from '../../core/ports/signing-keys.ts';
import { publicSets, signingSet } from '../../core/use-cases/issuing/key-schedule.ts';
import { rotateSigningKeys } from '../../core/use-cases/issuing/rotate-signing-keys.ts';
import { type Act, Refused } from './answer.ts';

const WHY = {
  'too-many-sets': 'As many sets of keys are public as may be: try again when the oldest has left, or add --revoke',
  raced: 'Somebody else rotated the keys at the same moment: look at the list before you try again',
};

export function addIdentityCommands(program: Command, act: Act): void {
  const keys = program.command('identity-keys').description('the keys that sign the identity tokens of this service');

  keys
    .command('list')
    .description('lists the sets of keys that are public; private keys are never shown')
    .action(
      act(async ({ signingKeys, clock }) => {
        const sets = await signingKeys.list();
        const now = clock.now();
        const signing = signingSet(sets, now);
        const listed = publicSets(sets, now).map((set) => ({ ...outlineOf(set), signing: set === signing }));
        const lines = listed.map((set) => `${lineOf(set)}${set.signing ? '  signs now' : ''}`);
        return { value: { sets: listed }, text: lines.join('\n') || 'There are no keys yet: the first use makes them' };
      }),
    );

  keys
    .command('rotate')
    .description('adds a set of keys, which signs as soon as clouds can know it: in ten minutes')
    .option(
      '--revoke',
      'for keys that somebody may know: destroy all older sets now, though tokens may fail for minutes',
    )
    .action(
      act<{ revoke?: boolean }>(async ({ signingKeys: store, clock }, { revoke = false }) => {
        const rotated = await rotateSigningKeys({ store, clock, signing: createTokenSigning() }, { revoke });
        if ('failed' in rotated) throw new Refused(WHY[rotated.failed]);
        const { added, revoked } = rotated;
        const text = `Added ${lineOf(outlineOf(added))}${revoke ? `; older sets destroyed: ${revoked}` : ''}`;
        return { value: { ...outlineOf(added), revoked }, text };
      }),
    );
}

interface Outline {
  readonly generation: number;
  readonly signs_from: string;
  readonly keys: readonly { readonly kid: string; readonly alg: string }[];
}

function outlineOf({ generation, signsFrom, keys }: SigningKeySet): Outline {
  return { generation, signs_from: signsFrom, keys: keys.map(({ id, algorithm }) => ({ kid: id, alg: algorithm })) };
}

function lineOf({ generation, signs_from: signsFrom, keys }: Outline): string {
  return `set ${generation}, signs from ${signsFrom}: ${keys.map(({ kid, alg }) => `${alg} ${kid}`).join(', ')}`;
}
