/** Who types a command of `strata-admin`, as the accounts' logs name them: the option `--as`, or the system's user. */
import { userInfo } from 'node:os';
import { InvalidArgumentError } from 'commander';

/** In characters. */
export const OPERATOR_NAME_LENGTH_MAX = 100;

/** Takes one line of visible characters and spaces; throws an InvalidArgumentError for another text. */
export function operatorName(text: string): string {
  const name = text.trim();
  if (name !== '' && name.length <= OPERATOR_NAME_LENGTH_MAX && !/\p{C}/u.test(name)) return name;
  throw new InvalidArgumentError(
    `Give a name of 1 to ${OPERATOR_NAME_LENGTH_MAX} characters, without control characters.`,
  );
}

/** Returns the user's name; its number where the system has no name for it, as in many containers. */
export function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `${process.getuid?.() ?? 'unknown'}`;
  }
}
