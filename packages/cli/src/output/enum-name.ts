import { CheckStatusSchema, PullRequestStateSchema } from '@tutti/proto'

interface EnumShape {
  readonly values: readonly { readonly name: string; readonly number: number }[]
  readonly sharedPrefix?: string | undefined
}

/** The name of an enum's value without the enum's prefix, in lower case; `unspecified` for a number that this version does not know. */
function enumName(desc: EnumShape, number: number): string {
  const name = desc.values.find((value) => value.number === number)?.name
  return name === undefined ? 'unspecified' : name.slice((desc.sharedPrefix ?? '').length).toLowerCase()
}

export const pullRequestStateName = (number: number): string => enumName(PullRequestStateSchema, number)
export const checkStatusName = (number: number): string => enumName(CheckStatusSchema, number)
