"""What is searched with a vault: added folders, saved web pages and skills."""
