// refused: typescript(no-misused-promises)
export function listen(on: (listener: () => void) => void): void {
  on(async () => {
    await Promise.reject(new Error('lost'));
  });
}
