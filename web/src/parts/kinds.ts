/** Of those of machines the ones that operators have declared, devices among them. */
export const declaredOf = <Kind extends { name: string; countedOn: string }>(
  kinds: readonly Kind[],
): Kind[] =>
  kinds.filter(
    ({ name, countedOn }) => countedOn === 'MACHINE' && !['cpus', 'memoryMb', 'places'].includes(name),
  );
