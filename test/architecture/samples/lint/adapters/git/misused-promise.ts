// refused: typescript(no-misused-promises)
async function isOpen(): Promise<boolean> {
  return true;
}

export function describeState(): string {
  return isOpen() ? 'open' : 'closed';
}
