// refused: TS1294
export enum Colour {
  Red,
}
