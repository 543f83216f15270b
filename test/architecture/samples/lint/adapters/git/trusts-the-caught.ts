// refused: typescript(use-unknown-in-catch-callback-variable)
export function run(work: Promise<void>, log: (text: string) => void): Promise<void> {
  return work.catch((error) => log(String(error)));
}
