import { PullRequestMode } from '@tutti/proto'

/** The words of `--pr`. */
export const pullRequestModes = {
  ready: PullRequestMode.READY,
  draft: PullRequestMode.DRAFT,
  none: PullRequestMode.NONE,
} as const

export type PullRequestModeName = keyof typeof pullRequestModes
