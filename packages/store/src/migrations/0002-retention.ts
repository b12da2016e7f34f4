import { sql } from 'kysely'
import type { Migration } from './migration.ts'

/** What may be removed, and up to where logs are sealed. What there is already is kept for ever: nothing says what of it is not needed. */
export const retention: Migration = {
  format: 2,
  statements: ({ schema }) => [
    schema.alterTable('blob_refs').addColumn('used_at', 'bigint'),
    schema.createIndex('blob_refs_by_blob').on('blob_refs').columns(['blob_id', 'used_at']),
    schema
      .createTable('blob_removals')
      .addColumn('blob_id', 'text', (column) => column.primaryKey())
      .addColumn('owner', 'text', (column) => column.notNull())
      .addColumn('begun_at', 'bigint', (column) => column.notNull()),
    schema.alterTable('logs').addColumn('sealed', 'bigint', (column) => column.notNull().defaultTo(0)),
    // Few logs are open, and they are looked for all the time.
    schema
      .createIndex('logs_open')
      .on('logs')
      .columns(['log_id'])
      .where(sql<boolean>`sealed < last`),
  ],
}
