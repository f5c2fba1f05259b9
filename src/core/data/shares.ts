/** By user id: the share of the grid that a user is entitled to, relative to others'. */
export class Shares {
  private readonly byUser = new Map<number, number>();

  /** 1 for a user of whom nothing else was said. */
  of(userId: number): number {
    return this.byUser.get(userId) ?? 1;
  }

  set(userId: number, share: number): void {
    if (share === 1) this.byUser.delete(userId);
    else this.byUser.set(userId, share);
  }
}
