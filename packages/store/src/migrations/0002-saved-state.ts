import type { Migration } from './migration.ts'

/** The rest of `CloudAgentStatePersistedMetadata` (seed 000) beside the blob's id. */
export const savedState: Migration = {
  format: 2,
  statements: ({ schema }) => [
    schema.alterTable('agents').addColumn('state_offset_key', 'text'),
    schema.alterTable('agents').addColumn('state_saved_at', 'bigint'),
    schema.alterTable('agents').addColumn('state_status', 'text'),
    schema.alterTable('agents').addColumn('state_version', 'integer'),
  ],
}
