// accepted
export function describe(name: string, size: number | null): object {
  return { name, ...(size === null ? {} : { size }) };
}
