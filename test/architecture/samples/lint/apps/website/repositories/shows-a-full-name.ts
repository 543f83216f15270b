// accepted
export const EXAMPLE = 'refs/heads/main';

export function isBranch(fullName: string): boolean {
  return fullName.startsWith('refs/heads/');
}
