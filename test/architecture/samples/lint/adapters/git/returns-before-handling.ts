// refused: strata(promises-handled-at-once)
export async function answerOf(isKept: boolean): Promise<string> {
  const made = new Promise<string>((resolve, reject) => {
    setTimeout(() => (isKept ? resolve('made') : reject(new Error('late'))), 10);
  });
  if (isKept) return 'kept';
  return made.then((answer) => answer.trim()).catch(() => '') + (await made);
}
