-- What maintenance windows and reservations hold of pools of their site or of the grid: [{id, amount}].
ALTER TABLE holds ADD COLUMN pools jsonb NOT NULL DEFAULT '[]';
