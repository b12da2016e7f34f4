import type { Command } from 'commander'
import { parseCount } from '../values/count.ts'

export interface PagingFlags {
  readonly limit?: string
}

export const addPaging = (command: Command): Command =>
  command.option('-L, --limit <number>', 'how many at most, newest first (default: 50)')

/** Reads pages until there are enough items or no more. */
export async function readPages<T>(
  flags: PagingFlags,
  page: (request: {
    pageSize: number
    pageToken: string
  }) => Promise<{ items: readonly T[]; nextPageToken: string }>,
): Promise<{ items: T[]; more: boolean }> {
  const limit = flags.limit === undefined ? 50 : parseCount(flags.limit, '--limit', 1, 1_000_000)
  const items: T[] = []
  for (let pageToken = ''; ;) {
    const answer = await page({ pageSize: Math.min(1000, limit - items.length), pageToken })
    items.push(...answer.items)
    pageToken = answer.nextPageToken
    if (pageToken === '' || items.length >= limit) return { items, more: pageToken !== '' }
  }
}
