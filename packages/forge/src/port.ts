import type { LogId } from '@tutti/core'

export interface PullRequest {
  readonly number: number
  readonly url: string
  readonly head: string
  readonly base: string
  readonly headCommit: string
  readonly title: string
  readonly body: string
  readonly draft: boolean
  readonly state: 'open' | 'closed' | 'merged'
}

export interface NewPullRequest {
  readonly head: string
  readonly headCommit: string
  readonly base: string
  readonly baseCommit: string
  readonly title: string
  readonly body: string
  readonly draft: boolean
  /** The agent or ensemble that it comes from. */
  readonly source: LogId
}

/** Where branches are pushed and pull requests live. Pushing itself is git's (the mirror's) business. */
export interface Forge {
  readonly name: string
  /** The repository's default branch; never assumed to be `main`. */
  defaultBranch(owner: string, repository: string, signal: AbortSignal): Promise<string>
  findOpen(
    owner: string,
    repository: string,
    head: string,
    base: string,
    signal: AbortSignal,
  ): Promise<PullRequest | undefined>
  /** Idempotent by head and base: an open one is updated instead. */
  create(
    owner: string,
    repository: string,
    request: NewPullRequest,
    signal: AbortSignal,
  ): Promise<PullRequest>
  update(
    owner: string,
    repository: string,
    number: number,
    change: Partial<Pick<PullRequest, 'title' | 'body' | 'draft' | 'headCommit'>>,
    signal: AbortSignal,
  ): Promise<PullRequest>
  comment(owner: string, repository: string, number: number, body: string, signal: AbortSignal): Promise<void>
  /** @throws TuttiError `not_found`. */
  get(owner: string, repository: string, number: number, signal: AbortSignal): Promise<PullRequest>
}
