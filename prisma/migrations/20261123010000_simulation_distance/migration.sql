-- Whether policies are compared even if what is simulated of the one in force is far from what happened.
ALTER TABLE simulations ADD COLUMN accept_distance boolean NOT NULL DEFAULT false;
