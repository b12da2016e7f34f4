import { limits } from '@tutti/core'
import type { Page, PageRequest } from '@tutti/store'

/** The first page that has something to show, since not every filter is the store's. A page size of 0 means the default. */
export async function filledPage<Row>(
  { pageSize, pageToken }: PageRequest,
  list: (page: PageRequest) => Promise<Page<Row>>,
  isShown: (row: Row) => boolean,
): Promise<Page<Row>> {
  const size = pageSize || limits.defaultPageSize
  for (let token = pageToken; ;) {
    const page = await list({ pageSize: size, pageToken: token })
    const items = page.items.filter(isShown)
    if (items.length > 0 || page.nextPageToken === '') return { items, nextPageToken: page.nextPageToken }
    token = page.nextPageToken
  }
}
