import { crc32 } from 'node:zlib'
import { TuttiError, limits } from '@tutti/core'
import type { Page, PageRequest } from './port.ts'

/** A page's place in a list: how many rows to ask for and after which id (newest first). */
export interface PagePlace {
  readonly limit: number
  readonly before?: string
}

/**
 * Reads a page request. `list` names the list with all its filters; a token works only in the list that gave it.
 * A page size of 0 means the default, one above the maximum means the maximum.
 *
 * @throws TuttiError `invalid_argument`, detail `field` `page_size` or `page_token`.
 */
export function readPage({ pageSize, pageToken }: PageRequest, list: readonly unknown[]): PagePlace {
  if (!Number.isSafeInteger(pageSize) || pageSize < 0) {
    throw new TuttiError('invalid_argument', 'page_size must be a whole number, not below 0.', {
      field: 'page_size',
    })
  }
  const limit = Math.min(pageSize || limits.defaultPageSize, limits.maxPageSize)
  if (pageToken === '') return { limit }
  const before = Buffer.from(pageToken, 'base64url').toString().split(' ')[1] ?? ''
  if (before !== '' && makeToken(before, list) === pageToken) return { limit, before }
  throw new TuttiError(
    'invalid_argument',
    'page_token must be the next_page_token of the page before, with the same filters; leave it empty for the first page.',
    { field: 'page_token' },
  )
}

/** Cuts `limit + 1` rows down to a page; the row too many only tells that there is another page. */
export function makePage<Row, Item>(
  rows: readonly Row[],
  { limit }: PagePlace,
  list: readonly unknown[],
  idOf: (row: Row) => string,
  toItem: (row: Row) => Item,
): Page<Item> {
  const kept = rows.slice(0, limit)
  const last = kept.at(-1)
  return {
    items: kept.map(toItem),
    nextPageToken: last !== undefined && rows.length > limit ? makeToken(idOf(last), list) : '',
  }
}

const makeToken = (id: string, list: readonly unknown[]): string =>
  Buffer.from(`${crc32(JSON.stringify([id, list])).toString(36)} ${id}`).toString('base64url')
