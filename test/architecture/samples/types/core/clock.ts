export interface Clock {
  now(): string;
}
