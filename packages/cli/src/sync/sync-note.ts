/** What a sync has to say of one path, as it happens. */
export interface SyncNote {
  /**
   * `received`, `removed`: from the agent. `sent`: to it. `kept`: both had changed it; the user's counts. `left`: it is not as the agent has
   * it, was not sent, or is not in the agent's sandbox, and `detail` says why and what to do.
   */
  readonly kind: 'received' | 'removed' | 'sent' | 'kept' | 'left'
  /** Path key. */
  readonly key: string
  readonly detail?: string
}
