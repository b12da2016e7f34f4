import { searchAttributes } from '@tutti/core'
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'

const keyword = <Name extends string>(name: Name) =>
  defineSearchAttributeKey(name, SearchAttributeType.KEYWORD)

/** The typed keys of {@link searchAttributes}. */
export const searchAttributeKeys = {
  status: keyword(searchAttributes.status),
  owner: keyword(searchAttributes.owner),
  repository: keyword(searchAttributes.repository),
  ensemble: keyword(searchAttributes.ensemble),
} as const
