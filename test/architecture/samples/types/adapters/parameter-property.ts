// refused: TS1294
export class Pool {
  constructor(readonly size: number) {}
}
