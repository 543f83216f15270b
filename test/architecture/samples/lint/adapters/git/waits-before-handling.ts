// refused: strata(promises-handled-at-once)
declare function readLayer(): Promise<string>;
declare function readRefs(): Promise<string>;

export async function readBoth(): Promise<readonly string[]> {
  const layer = readLayer();
  const refs = await readRefs();
  return [await layer, refs];
}
