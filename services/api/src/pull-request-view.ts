import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { isAgentId } from '@tutti/core'
import { PullRequestState } from '@tutti/proto'
import type { PullRequestRow } from '@tutti/store'

export const pullRequestStates = {
  open: PullRequestState.OPEN,
  closed: PullRequestState.CLOSED,
  merged: PullRequestState.MERGED,
}

/** A pull request as `tutti.v1.PullRequest`. */
export function pullRequestView(row: PullRequestRow) {
  return {
    url: row.url,
    number: BigInt(row.number),
    branch: row.head,
    base: row.base,
    title: row.title,
    body: row.body,
    draft: row.draft,
    state: pullRequestStates[row.state],
    headCommit: row.headCommit,
    baseCommit: row.baseCommit,
    repository: row.repository,
    ...(isAgentId(row.source) ? { bcId: row.source } : { ensembleId: row.source }),
    createdAt: timestampFromMs(row.createdAt),
    updatedAt: timestampFromMs(row.updatedAt),
  }
}
