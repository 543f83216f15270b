export const used = 1;
export const unused = 2;
export interface UnusedShape {
  readonly a: string;
}
