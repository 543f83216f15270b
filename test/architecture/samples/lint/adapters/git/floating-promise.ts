// refused: typescript(no-floating-promises)
async function save(): Promise<void> {}

export function start(): void {
  save();
}
