import type { DeliveryFailure } from '@tutti/core'
import type { Mirror } from '@tutti/git'
import type { ActivityDeps } from './deps.ts'

export type Pushed =
  | { readonly branch: string }
  | { readonly failure: DeliveryFailure; readonly detail: string }

/** Branches that are tried when a name is taken by somebody else's commits. */
const maxNames = 5

/**
 * Pushes the commit to the branch, never over commits that we did not see. A branch of ours that has moved on by a follow-up is
 * moved along; a name that somebody else's commits have taken gets a number behind it, unless the name was asked for.
 */
export async function pushBranch(
  { crashPoint }: ActivityDeps,
  mirror: Mirror,
  request: {
    readonly commit: string
    readonly branch: string
    readonly asked: boolean
    readonly expected?: string
  },
  signal: AbortSignal,
): Promise<Pushed> {
  const { commit, asked, expected } = request
  for (let number = 1; ; number += 1) {
    const branch = number === 1 ? request.branch : `${request.branch}-${number}`
    const result = await crashPoint('deliver.push', () =>
      mirror.push({ commit, branch, ...(expected && number === 1 && { expected }) }, signal),
    )
    if (result.outcome !== 'refused') return { branch }
    if (result.why === 'moved' && !asked && number < maxNames) continue
    const failure = result.why === 'unavailable' || result.why === 'other' ? 'forge_unavailable' : result.why
    return { failure, detail: result.message }
  }
}
