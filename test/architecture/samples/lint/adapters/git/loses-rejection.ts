// refused: typescript(return-await)
async function read(): Promise<string> {
  return 'a';
}

export async function readOrEmpty(): Promise<string> {
  try {
    return read();
  } catch {
    return '';
  }
}
