import type { Migration } from './migration.ts'

/** Who wants the few records that tell of a workspace passes over all that an agent has said. */
export const recordsByType: Migration = {
  format: 3,
  statements: ({ schema }) => [
    schema.createIndex('log_records_by_type').on('log_records').columns(['log_id', 'type', 'sequence']),
  ],
}
